<?php
/** Chance that is the same for each seed: every part of the site throws dice of its own, so that one can change without the others. */
final class Dice
{
    private \Random\Engine\Xoshiro256StarStar $engine;
    private \Random\Randomizer $randomizer;

    public function __construct(int $seed, string $what)
    {
        $this->engine = new \Random\Engine\Xoshiro256StarStar(hash('sha256', "plimsoll/$seed/$what", true));
        $this->randomizer = new \Random\Randomizer($this->engine);
    }

    /** A whole number, both ends included. */
    public function between(int $least, int $most): int
    {
        return $this->randomizer->getInt($least, $most);
    }

    /** From 0, up to but without 1. */
    public function fraction(): float
    {
        return ($this->randomizer->nextInt() & 0x1fffffffffffff) / 9007199254740992;
    }

    public function chance(float $probability): bool
    {
        return $this->fraction() < $probability;
    }

    /** One of a list. */
    public function pick(array $list): mixed
    {
        return $list[$this->between(0, count($list) - 1)];
    }

    /** An index below $count; small ones are the more likely, the greater the power. */
    public function skewed(int $count, float $power = 2.0): int
    {
        return (int) ($count * $this->fraction() ** $power);
    }

    /** Log-normal, as sizes of texts are, cut at both ends. */
    public function size(float $median, float $sigma, int $least, int $most): int
    {
        $normal = sqrt(-2 * log(1 - $this->fraction())) * cos(2 * M_PI * $this->fraction());
        return (int) min($most, max($least, $median * exp($sigma * $normal)));
    }

    /** Hex digits. */
    public function hex(int $digits): string
    {
        return substr(bin2hex($this->randomizer->getBytes(intdiv($digits + 1, 2))), 0, $digits);
    }
}
