<?php

declare(strict_types=1);

namespace Forum\Upgrade;

use Forum\Schema;

/** The steps from version 1.9 to 2.0, in their order: first the tables, then what is computed from them. */
final class Plan
{
    public const FROM = '1.9';
    public const TO = '2.0';
    private const OLD = 'CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci';
    private const NEW = 'CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci';

    /** @return list<Step> */
    public static function steps(): array
    {
        return [...self::alters(), ...self::rebuilds()];
    }

    /** @return list<Step> */
    private static function alters(): array
    {
        return [
            self::addColumns('board-columns', 'Altering boards', 'board', [
                'last_post_id' => 'INT UNSIGNED NOT NULL DEFAULT 0',
            ]),
            self::addColumns('member-columns', 'Altering members', 'member', [
                'reaction_score' => 'INT NOT NULL DEFAULT 0',
                'profile' => 'MEDIUMTEXT NULL',
            ]),
            self::addColumns('thread-columns', 'Altering threads', 'thread', [
                'first_post_id' => 'INT UNSIGNED NOT NULL DEFAULT 0',
                'last_post_id' => 'INT UNSIGNED NOT NULL DEFAULT 0',
                'reaction_score' => 'INT NOT NULL DEFAULT 0',
            ]),
            // The copy that servers without instant columns make.
            self::addColumns(
                'post-columns',
                'Altering posts',
                'post',
                [
                    'reaction_score' => 'INT NOT NULL DEFAULT 0',
                    'reactions' => 'MEDIUMTEXT NULL',
                    'edited_at' => 'INT UNSIGNED NOT NULL DEFAULT 0',
                ],
                ', ALGORITHM=COPY',
            ),
            new Alter(
                'post-index',
                'Indexing posts',
                'ALTER TABLE post ADD INDEX member_posted (member_id, posted_at)',
                'ALTER TABLE post DROP INDEX member_posted',
                fn(Schema $schema) => $schema->hasIndex('post', 'member_posted'),
            ),
            new Alter(
                'thread-types',
                'Widening threads',
                'ALTER TABLE thread MODIFY title VARCHAR(250) NOT NULL, MODIFY views BIGINT UNSIGNED NOT NULL, ALGORITHM=COPY',
                'ALTER TABLE thread MODIFY title VARCHAR(100) NOT NULL, MODIFY views INT UNSIGNED NOT NULL',
                fn(Schema $schema) => $schema->hasType('thread', 'views', 'bigint unsigned'),
            ),
            new Alter(
                'like-types',
                'Widening likes',
                'ALTER TABLE post_like MODIFY liked_at BIGINT UNSIGNED NOT NULL, ALGORITHM=COPY',
                'ALTER TABLE post_like MODIFY liked_at INT UNSIGNED NOT NULL',
                fn(Schema $schema) => $schema->hasType('post_like', 'liked_at', 'bigint unsigned'),
            ),
            // CONVERT alone would make the next longer type of a text column: hence the MODIFYs.
            self::convert('member', 'members', 'MODIFY signature TEXT @ NOT NULL, MODIFY profile MEDIUMTEXT @ NULL'),
            self::convert('thread', 'threads', ''),
            self::convert('post', 'posts', 'MODIFY message MEDIUMTEXT @ NOT NULL, MODIFY reactions MEDIUMTEXT @ NULL'),
            self::convert('search_index', 'the search index', 'MODIFY message MEDIUMTEXT @ NOT NULL'),
            new Alter(
                'search-fulltext',
                'Indexing the search index',
                'ALTER TABLE search_index ADD FULLTEXT INDEX words (title, message)',
                // Rebuilt, as InnoDB leaves a hidden column behind.
                'ALTER TABLE search_index DROP INDEX words, FORCE, ALGORITHM=COPY',
                fn(Schema $schema) => $schema->hasIndex('search_index', 'words'),
            ),
        ];
    }

    /** @return list<Step> */
    private static function rebuilds(): array
    {
        return [
            new Rebuild('post-reactions', 'Rebuilding reactions of posts', 'post', 'post_id', 1, [
                "UPDATE post p LEFT JOIN (
                    SELECT post_id, COUNT(*) AS n, GROUP_CONCAT(member_id ORDER BY liked_at, member_id) AS members
                    FROM post_like WHERE post_id > :low AND post_id <= :high GROUP BY post_id
                 ) l ON l.post_id = p.post_id
                 SET p.reaction_score = COALESCE(l.n, 0), p.reactions = CONCAT('[', COALESCE(l.members, ''), ']')
                 WHERE p.post_id > :low AND p.post_id <= :high",
            ]),
            new Rebuild('thread-counters', 'Rebuilding counters of threads', 'thread', 'thread_id', 20, [
                'UPDATE thread t JOIN (
                    SELECT thread_id, COUNT(*) AS n, MAX(posted_at) AS last_at, MIN(post_id) AS first_id,
                        MAX(post_id) AS last_id, SUM(reaction_score) AS score
                    FROM post WHERE thread_id > :low AND thread_id <= :high GROUP BY thread_id
                 ) p ON p.thread_id = t.thread_id
                 SET t.post_count = p.n, t.last_post_at = p.last_at, t.first_post_id = p.first_id,
                    t.last_post_id = p.last_id, t.reaction_score = p.score',
            ]),
            new Rebuild('member-counters', 'Rebuilding counters of members', 'member', 'member_id', 40, [
                "UPDATE member m LEFT JOIN (
                    SELECT member_id, COUNT(*) AS n, SUM(reaction_score) AS score, MAX(posted_at) AS last_at
                    FROM post WHERE member_id > :low AND member_id <= :high GROUP BY member_id
                 ) p ON p.member_id = m.member_id
                 SET m.post_count = COALESCE(p.n, 0), m.reaction_score = COALESCE(p.score, 0),
                    m.profile = CONCAT('{\"last_post_at\":', COALESCE(p.last_at, 0), ',\"signature\":', LENGTH(m.signature), '}')
                 WHERE m.member_id > :low AND m.member_id <= :high",
            ]),
            new Rebuild('board-counters', 'Rebuilding counters of boards', 'board', 'board_id', 1000, [
                'UPDATE board b JOIN (
                    SELECT board_id, COUNT(*) AS n, SUM(post_count) AS posts, MAX(last_post_id) AS last_id
                    FROM thread WHERE board_id > :low AND board_id <= :high GROUP BY board_id
                 ) t ON t.board_id = b.board_id
                 SET b.thread_count = t.n, b.post_count = t.posts, b.last_post_id = t.last_id',
            ]),
            new Rebuild(
                'search-index',
                'Rebuilding the search index',
                'post',
                'post_id',
                1,
                [
                    'DELETE FROM search_index WHERE post_id > :low AND post_id <= :high',
                    'INSERT INTO search_index (post_id, board_id, posted_at, title, message)
                 SELECT p.post_id, t.board_id, p.posted_at, IF(p.position = 0, t.title, \'\'), p.message
                 FROM post p JOIN thread t ON t.thread_id = p.thread_id
                 WHERE p.post_id > :low AND p.post_id <= :high',
                ],
                'TRUNCATE TABLE search_index',
            ),
        ];
    }

    /** @param array<string, string> $columns */
    private static function addColumns(
        string $name,
        string $title,
        string $table,
        array $columns,
        string $how = '',
    ): Alter {
        $add = $drop = [];
        foreach ($columns as $column => $type) {
            $add[] = "ADD COLUMN `$column` $type";
            $drop[] = "DROP COLUMN `$column`";
        }
        $first = array_key_first($columns);
        return new Alter(
            $name,
            $title,
            "ALTER TABLE `$table` " . implode(', ', $add) . $how,
            "ALTER TABLE `$table` " . implode(', ', $drop),
            fn(Schema $schema) => $schema->hasColumn($table, $first),
        );
    }

    private static function convert(string $table, string $what, string $modify): Alter
    {
        $sql = static fn(string $charset) => "ALTER TABLE `$table` CONVERT TO $charset" .
            ($modify === '' ? '' : ', ' . str_replace('@', $charset, $modify)) .
            ', ALGORITHM=COPY';
        return new Alter(
            str_replace('_', '-', $table) . '-charset',
            "Converting $what",
            $sql(self::NEW),
            $sql(self::OLD),
            fn(Schema $schema) => $schema->hasCollation($table, 'utf8mb4_unicode_ci'),
        );
    }
}
