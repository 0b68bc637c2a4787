<?php

declare(strict_types=1);

/**
 * The board: index.php, index.php?forums/3/page-2, index.php?threads/12/page-5, index.php?threads/12/add-reply,
 * index.php?login, index.php?logout.
 */

namespace Forum;

require __DIR__ . '/../bootstrap.php';

/**
 * @param array<string, mixed> $config
 * @return array{title: string, body: string}
 */
function answer(array $config, string $route): array
{
    $db = Database::connect($config);
    closeWhileUpgrading($db);
    if (preg_match('~^(forums|threads)/(\d{1,9})(?:/page-(\d{1,6}))?/?$~', $route, $parts)) {
        $page = (int) ($parts[3] ?? 1);
        $board = new Board($db);
        if ($parts[1] === 'forums') {
            return $board->threads((int) $parts[2], $page);
        }
        $answer = $board->posts((int) $parts[2], $page);
        $answer['body'] .= (new Replies($db))->form((int) $parts[2]);
        return $answer;
    }
    if (preg_match('~^threads/(\d{1,9})/add-reply/?$~', $route, $parts)) {
        return reply($db, (int) $parts[1]);
    }
    return match ($route) {
        '' => (new Board($db))->index(),
        'login' => login($db),
        'logout' => logout($db),
        default => throw new Problem('There is no such page.', 404),
    };
}

/** From the start of an upgrade to its end, also where it has stopped, everybody has to wait; XenForo's visitors do. */
function closeWhileUpgrading(Database $db): void
{
    if ($db->value('SELECT COUNT(*) FROM upgrade_lease') > 0) {
        throw new Problem('The board is currently being upgraded. Please check back later.', 503);
    }
}

/** @return array{title: string, body: string} */
function login(Database $db): array
{
    header('Cache-Control: private, no-store');
    $sessions = new Sessions($db, 'forum_session');
    $members = new Members($db);
    $session = $sessions->current();
    $problem = '';
    if ($_SERVER['REQUEST_METHOD'] === 'POST') {
        if (!Sessions::tokenFits($session, $_POST['_xfToken'] ?? null)) {
            throw new Problem('The security token did not fit. Go back, reload the page and try again.', 400);
        }
        if ($member = $members->verify($_POST['name'] ?? null, $_POST['password'] ?? null)) {
            $sessions->end();
            $sessions->begin($member);
            header('Location: index.php?login', true, 303);
            return ['title' => 'Logged in', 'body' => ''];
        }
        $problem = Html::errorBox('The name or the password is wrong.');
    }
    $session ??= $sessions->begin(0);
    $hidden = Html::hidden(['_xfToken' => Sessions::token($session)]);
    if ($session['member_id']) {
        $name = Html::text($members->name($session['member_id']));
        $form = "<form action=\"index.php?logout\" method=\"post\">$hidden<button>Log out</button></form>\n";
        return ['title' => 'Logged in', 'body' => "<p class=\"member\">You are logged in as $name.</p>\n$form"];
    }
    $form =
        "$problem<form action=\"index.php?login\" method=\"post\" class=\"login\">\n$hidden" .
        "<label>Name <input name=\"name\" autocomplete=\"username\"></label>\n" .
        "<label>Password <input name=\"password\" type=\"password\" autocomplete=\"current-password\"></label>\n" .
        "<button>Log in</button>\n</form>\n";
    return ['title' => 'Log in', 'body' => $form];
}

/** @return array{title: string, body: string} */
function reply(Database $db, int $threadId): array
{
    header('Cache-Control: private, no-store');
    if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
        throw new Problem('There is no such page.', 404);
    }
    $id = (new Replies($db))->add($threadId, $_POST['_xfToken'] ?? null, $_POST['message'] ?? null);
    header("Location: index.php?threads/$threadId#post-$id", true, 303);
    return ['title' => 'Posted', 'body' => ''];
}

/** @return array{title: string, body: string} */
function logout(Database $db): array
{
    header('Cache-Control: private, no-store');
    $sessions = new Sessions($db, 'forum_session');
    if (!Sessions::tokenFits($sessions->current(), $_POST['_xfToken'] ?? null)) {
        throw new Problem('The security token did not fit. Go back, reload the page and try again.', 400);
    }
    $sessions->end();
    return ['title' => 'Logged out', 'body' => "<p>You are logged out.</p>\n"];
}

// Guests' pages may be kept for a short while by a cache in front; it tells members by their cookie.
header('Cache-Control: ' . ($_COOKIE ? 'private, no-store' : 'public, max-age=0, s-maxage=60'));
try {
    // The route ends at the first &, as a tracking parameter may follow it.
    $route = rawurldecode(explode('&', $_SERVER['QUERY_STRING'] ?? '', 2)[0]);
    $answer = answer(require __DIR__ . '/../config.php', $route);
    echo Html::page($answer['title'], $answer['body']);
} catch (Problem $problem) {
    http_response_code($problem->status);
    if ($problem->status >= 500) {
        header('Cache-Control: no-store');
    }
    echo Html::page('Something went wrong', Html::errorBox($problem->getMessage()));
} catch (\Throwable $error) {
    http_response_code(500);
    header('Cache-Control: no-store');
    error_log((string) $error);
    echo Html::page('Something went wrong', Html::errorBox('The server met an error. Please come back later.'));
}
