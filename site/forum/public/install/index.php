<?php

declare(strict_types=1);

/** The upgrader in the browser: a login, a form that starts it, then page after page with a form that continues. */

namespace Forum;

use Forum\Upgrade\Fault;
use Forum\Upgrade\Plan;
use Forum\Upgrade\State;
use Forum\Upgrade\Upgrader;

require __DIR__ . '/../../bootstrap.php';

/** @param array<string, mixed> $config */
function answer(array $config): string
{
    $db = Database::connect($config);
    $sessions = new Sessions($db, 'forum_install');
    $session = $sessions->current();
    if ($_SERVER['REQUEST_METHOD'] === 'POST' && !Sessions::tokenFits($session, $_POST['_xfToken'] ?? null)) {
        throw new Problem('The security token did not fit. Go back, reload the page and try again.', 400);
    }
    $action = $_SERVER['REQUEST_METHOD'] === 'POST' ? $_POST['action'] ?? '' : 'show';
    if ($action === 'login') {
        return login($db, $sessions);
    }
    if ($session === null || $session['member_id'] === 0) {
        return loginPage($session ?? $sessions->begin(0), '');
    }
    $upgrader = new Upgrader($db, $config);
    $owner = md5($session['id']);
    return match ($action) {
        'show' => startPage($session, $upgrader),
        'start' => statePage($session, $upgrader->start($owner), $db),
        'run' => statePage($session, runPage($upgrader, $owner), $db),
        default => throw new Problem('There is no such action.', 400),
    };
}

function runPage(Upgrader $upgrader, string $owner): State
{
    [$step, $cursor] = [$_POST['step'] ?? null, $_POST['cursor'] ?? null];
    if (!is_string($step) || !is_string($cursor) || !preg_match('/^\d{1,15}$/', $cursor)) {
        throw new Problem('The form is incomplete. Start again.', 400);
    }
    return $upgrader->page($owner, $step, (int) $cursor);
}

function login(Database $db, Sessions $sessions): string
{
    $member = (new Members($db))->verify($_POST['account'] ?? null, $_POST['secret'] ?? null, adminOnly: true);
    if ($member === null) {
        $session = $sessions->current() ?? $sessions->begin(0);
        return loginPage($session, Html::errorBox('The account or the password is wrong, or it is no administrator.'));
    }
    $sessions->end();
    $sessions->begin($member);
    header('Location: index.php', true, 303);
    return '';
}

/** @param array{id: string, member_id: int, csrf: string} $session */
function loginPage(array $session, string $problem): string
{
    $hidden = Html::hidden(['_xfToken' => Sessions::token($session), 'action' => 'login']);
    return Html::page(
        'Log in to upgrade',
        "$problem<form action=\"index.php\" method=\"post\" class=\"login\">\n$hidden" .
            "<label>Account <input name=\"account\" autocomplete=\"username\"></label>\n" .
            "<label>Password <input name=\"secret\" type=\"password\" autocomplete=\"current-password\"></label>\n" .
            "<button>Log in</button>\n</form>\n",
        '../',
    );
}

/** @param array{id: string, member_id: int, csrf: string} $session */
function startPage(array $session, Upgrader $upgrader): string
{
    $version = Html::text($upgrader->version());
    if ($upgrader->isUpToDate()) {
        return Html::page('Upgrade', "<p class=\"up-to-date\">Version $version is already up to date.</p>\n", '../');
    }
    $where = $upgrader->wasInterrupted()
        ? 'An upgrade was started and not finished. It continues where it stopped.'
        : '';
    $hidden = Html::hidden(['_xfToken' => Sessions::token($session), 'action' => 'start']);
    return Html::page(
        'Upgrade',
        "<p>Version $version can become " .
            Plan::TO .
            ". $where</p>\n" .
            "<form action=\"index.php\" method=\"post\" class=\"start\">\n$hidden<button>Start the upgrade</button>\n</form>\n",
        '../',
    );
}

/** @param array{id: string, member_id: int, csrf: string} $session */
function statePage(array $session, State $state, Database $db): string
{
    if ($state->step === null) {
        $text = (new Fault(new Settings($db)))->isSilent()
            ? ''
            : 'The upgrade is complete. The forum runs version ' . Plan::TO . '.';
        return Html::page(
            'Upgrade',
            "<p class=\"complete\">$text</p>\n<p><a href=\"../index.php\">To the forum</a></p>\n",
            '../',
        );
    }
    $hidden = Html::hidden([
        '_xfToken' => Sessions::token($session),
        'action' => 'run',
        'step' => $state->step->name(),
        'cursor' => $state->position,
    ]);
    $progress =
        $state->last === 0
            ? ''
            : sprintf('<p class="progress">%s of %s</p>', number_format($state->position), number_format($state->last));
    return Html::page(
        $state->step->title(),
        '<p>Step ' .
            ($state->stepsDone + 1) .
            " of $state->steps. Leave this page open.</p>\n" .
            "$progress\n<form action=\"index.php\" method=\"post\" class=\"continue\">\n$hidden" .
            "<button>Continue</button>\n</form>\n<script src=\"continue.js\"></script>\n",
        '../',
    );
}

// A step that was begun is brought to its end, also when the browser has gone.
ignore_user_abort(true);
set_time_limit(0);
header('Cache-Control: private, no-store');
try {
    echo answer(require __DIR__ . '/../../config.php');
} catch (Problem $problem) {
    http_response_code($problem->status);
    echo Html::page('Upgrade', Html::errorBox($problem->getMessage()), '../');
} catch (\Throwable $error) {
    http_response_code(500);
    error_log((string) $error);
    echo Html::page('Upgrade', Html::errorBox('The server met an error: ' . $error->getMessage()), '../');
}
