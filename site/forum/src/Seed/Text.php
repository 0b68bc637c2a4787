<?php

declare(strict_types=1);

namespace Forum\Seed;

use Random\Randomizer;

/** Prose of no language: words as frequent and sentences as long as in real text, so that it compresses alike. */
final class Text
{
    private const SENTENCES = 4096;

    /** @var list<string> */
    private array $words = [];
    /** @var list<string> */
    private array $sentences = [];

    public function __construct(private readonly Randomizer $random)
    {
        // Syllables of which no word comes that one would not show to everybody.
        $starts = ['b', 'd', 'l', 'm', 'n', 'r', 's', 't', 'v', 'st', 'tr', 'br', 'dr', ''];
        $middles = ['a', 'e', 'i', 'o', 'u', 'ea', 'ou', 'ai'];
        $ends = ['', '', 'n', 'r', 's', 'l'];
        for ($i = 0; $i < 3000; $i++) {
            $word = '';
            // Frequent words are short.
            for ($syllable = 0; $syllable <= min(2, intdiv($i, 100)) * $random->getInt(0, 1); $syllable++) {
                $word .= $this->one($starts) . $this->one($middles) . $this->one($ends);
            }
            $this->words[] = $word;
        }
        for ($i = 0; $i < self::SENTENCES; $i++) {
            $this->sentences[] = ucfirst($this->words($random->getInt(4, 18))) . '.';
        }
    }

    public function words(int $count): string
    {
        $words = [];
        for ($i = 0; $i < $count; $i++) {
            // The square of a uniform number favours the front of the list, as language does.
            $words[] = $this->words[intdiv($this->random->getInt(0, 2999) ** 2, 3000)];
        }
        return implode(' ', $words);
    }

    public function title(): string
    {
        return substr(ucfirst($this->words($this->random->getInt(3, 9))), 0, 95);
    }

    /** A post: mostly a few sentences, one in eight a long one, in paragraphs. */
    public function post(): string
    {
        $count = $this->random->getInt(1, 8) === 1 ? $this->random->getInt(15, 45) : $this->random->getInt(1, 10);
        $text = $this->sentences[$this->random->getInt(0, self::SENTENCES - 1)];
        for ($i = 1; $i < $count; $i++) {
            $text .= ($i % 6 ? ' ' : "\n") . $this->sentences[$this->random->getInt(0, self::SENTENCES - 1)];
        }
        return $text;
    }

    /** @param list<string> $of */
    private function one(array $of): string
    {
        return $of[$this->random->getInt(0, count($of) - 1)];
    }
}
