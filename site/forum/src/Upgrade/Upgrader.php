<?php

declare(strict_types=1);

namespace Forum\Upgrade;

use Forum\Database;
use Forum\Problem;
use Forum\Settings;

/** Goes through the plan a page at a time. All that it knows is in the database, so anything may be killed. */
final class Upgrader
{
    private readonly Settings $settings;
    private readonly Journal $journal;
    private readonly Lease $lease;

    /** @param array<string, mixed> $config */
    public function __construct(private readonly Database $db, private readonly array $config)
    {
        $this->settings = new Settings($db);
        $this->journal = new Journal($db);
        $this->lease = new Lease($db, $config['lease_s'], $config['lock_wait_s']);
    }

    public function version(): string
    {
        return (string) $this->settings->get('version');
    }

    public function isUpToDate(): bool
    {
        return $this->version() === Plan::TO;
    }

    public function wasInterrupted(): bool
    {
        return !$this->isUpToDate() && !$this->journal->isEmpty();
    }

    /** Begins an upgrade, or continues an interrupted one. Does no step yet. */
    public function start(string $owner): State
    {
        $this->refuseWhenUpToDate();
        return $this->released($this->lease->hold($owner, true, fn() => $this->finishedOr($this->state())));
    }

    /**
     * Does one bounded piece of the step that comes next.
     *
     * A form that was sent already ($step and $cursor lie behind the journal) does nothing but show where the
     * upgrade is: browsers send forms twice. One that is ahead of the journal was not made by us.
     */
    public function page(string $owner, string $step, int $cursor): State
    {
        $this->refuseWhenUpToDate();
        return $this->released(
            $this->lease->hold($owner, false, function () use ($step, $cursor): State {
                $state = $this->state();
                if ($state->step === null || $this->isBehind($state, $step, $cursor)) {
                    return $this->finishedOr($state);
                }
                (new Fault($this->settings))->strike($state->step->name());
                if (!(new Fault($this->settings))->isStuck($state->step->name())) {
                    $this->piece($state->step);
                }
                return $this->finishedOr($this->state());
            }),
        );
    }

    /** Takes everything back to the old version. */
    public function reset(): void
    {
        $this->lease->hold('reset', true, function (): void {
            // Rebuilds first: what they wrote is not worth being copied by the ALTERs.
            foreach (array_reverse(Plan::steps()) as $step) {
                $step->undo($this->db);
            }
            $this->journal->clear();
            $this->settings->set('version', Plan::FROM);
        });
        $this->lease->release();
    }

    private function refuseWhenUpToDate(): void
    {
        if ($this->isUpToDate()) {
            throw new Problem('There is nothing to do: the forum is already up to date.');
        }
    }

    private function state(): State
    {
        $steps = Plan::steps();
        foreach ($steps as $i => $step) {
            if (!$this->journal->isDone($step->name())) {
                $position = $this->journal->position($step->name());
                return new State($step, $position, $step->last($this->db), $i, count($steps));
            }
        }
        return new State(null, 0, 0, count($steps), count($steps));
    }

    private function isBehind(State $state, string $step, int $cursor): bool
    {
        $names = array_map(fn(Step $known) => $known->name(), Plan::steps());
        $posted = array_search($step, $names, true);
        $current = array_search($state->step?->name(), $names, true);
        if ($posted === false || $posted > $current || ($posted === $current && $cursor > $state->position)) {
            throw new Problem('The form does not belong to this upgrade. Start again.', 400);
        }
        return $posted < $current || $cursor < $state->position;
    }

    private function piece(Step $step): void
    {
        $this->journal->begin($step->name());
        $begun = microtime(true);
        $budget = new Budget($this->config['page_s'], $this->config['page_rows'], $this->config['batch_rows']);
        $done = $step->piece($this->db, $this->journal, $budget);
        $this->journal->pageDone($step->name(), $done, microtime(true) - $begun);
    }

    private function finishedOr(State $state): State
    {
        if ($state->step === null) {
            $this->settings->set('version', Plan::TO);
        }
        return $state;
    }

    private function released(State $state): State
    {
        if ($state->step === null) {
            $this->lease->release();
        }
        return $state;
    }
}
