<?php

declare(strict_types=1);

namespace Forum\Upgrade;

use Forum\Html;
use Forum\Problem;
use Forum\Settings;
use RuntimeException;

/** Failures on order (`php fault.php`), so that whoever drives the upgrader can be tested against them. */
final class Fault
{
    public const KINDS = [
        'fatal' => 'PHP runs out of memory in the middle of a page whose status, 200, is already sent',
        'error' => 'an exception: error box, status 500',
        'refused' => 'error box, status 200',
        'stuck' => 'the same continue form again and again',
        'silent' => 'the last page does not say that the upgrade is complete',
    ];

    private readonly string $kind;
    private readonly string $step;

    public function __construct(Settings $settings)
    {
        [$this->kind, $this->step] = explode(' ', $settings->get('fault') ?? ' ', 2) + ['', ''];
    }

    public function strike(string $step): void
    {
        if ($step !== $this->step) {
            return;
        }
        match ($this->kind) {
            'fatal' => $this->exhaustMemory(),
            'error' => throw new RuntimeException('A fault was requested.'),
            'refused' => throw new Problem('The upgrade cannot continue: a fault was requested.'),
            default => null,
        };
    }

    public function isStuck(string $step): bool
    {
        return $this->kind === 'stuck' && $this->step === $step;
    }

    public function isSilent(): bool
    {
        return $this->kind === 'silent';
    }

    private function exhaustMemory(): void
    {
        ini_set('display_errors', '1');
        ini_set('memory_limit', '64M');
        echo Html::head('Upgrading', '../');
        flush();
        str_repeat('x', 1 << 30);
    }
}
