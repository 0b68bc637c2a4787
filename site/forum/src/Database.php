<?php

declare(strict_types=1);

namespace Forum;

use PDO;
use PDOException;
use PDOStatement;

/** One connection to MariaDB or MySQL. Every failure is a PDOException. */
final class Database
{
    private function __construct(private readonly PDO $pdo, public readonly string $name) {}

    /**
     * Connects with the settings of config.php; tries again for $wait_s seconds while nobody listens.
     *
     * @param array<string, mixed> $config
     */
    public static function connect(array $config, float $wait_s = 0): self
    {
        $dsn = sprintf(
            'mysql:host=%s;port=%d;dbname=%s;charset=utf8mb4',
            $config['db_host'],
            $config['db_port'],
            $config['db_name'],
        );
        $until = microtime(true) + $wait_s;
        while (true) {
            try {
                $pdo = new PDO($dsn, $config['db_user'], $config['db_password'], [
                    PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
                    PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
                    PDO::ATTR_EMULATE_PREPARES => true,
                    PDO::ATTR_TIMEOUT => 10,
                ]);
                break;
            } catch (PDOException $error) {
                if (microtime(true) >= $until) {
                    throw $error;
                }
                usleep(500_000);
            }
        }
        // A forum that was set up long ago relies on lax defaults; ours must not depend on the server's.
        $pdo->exec("SET SESSION sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', lock_wait_timeout=120");
        return new self($pdo, (string) $config['db_name']);
    }

    /** @param array<int|string, mixed> $values */
    public function run(string $sql, array $values = []): PDOStatement
    {
        $statement = $this->pdo->prepare($sql);
        foreach ($values as $key => $value) {
            $statement->bindValue(
                is_int($key) ? $key + 1 : $key,
                $value,
                is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR,
            );
        }
        $statement->execute();
        return $statement;
    }

    /**
     * @param array<int|string, mixed> $values
     * @return list<array<string, mixed>>
     */
    public function rows(string $sql, array $values = []): array
    {
        return $this->run($sql, $values)->fetchAll();
    }

    /**
     * @param array<int|string, mixed> $values
     * @return array<string, mixed>|null
     */
    public function row(string $sql, array $values = []): ?array
    {
        return $this->rows($sql, $values)[0] ?? null;
    }

    /** @param array<int|string, mixed> $values The first column of the first row, null if there is none. */
    public function value(string $sql, array $values = []): mixed
    {
        $row = $this->row($sql, $values);
        return $row === null ? null : reset($row);
    }

    /** Does all of $work or nothing of it. */
    public function transaction(callable $work): mixed
    {
        $this->pdo->beginTransaction();
        try {
            $result = $work();
            $this->pdo->commit();
            return $result;
        } catch (\Throwable $error) {
            try {
                $this->pdo->rollBack();
            } catch (PDOException) {
                // The connection is gone, and the transaction with it: the first error is the one to tell.
            }
            throw $error;
        }
    }

    /** Runs what has no values, without looking for any in it: long statements, and text with question marks. */
    public function exec(string $sql): void
    {
        $this->pdo->exec($sql);
    }

    public function quote(string $text): string
    {
        return $this->pdo->quote($text);
    }
}
