<?php
// Makes 40 subscribers, whose password tests/real/replay/test_members.py has.
require '/usr/share/plimsoll/seed/wordpress.php';
for ($n = 1; $n <= 40; $n++) {
    $name = "plimsoll-member-$n";
    if (!username_exists($name)) {
        wp_insert_user([
            'user_login' => $name,
            'user_pass' => 'a word for members',
            'user_email' => "$name@example.org",
            'role' => 'subscriber',
        ]);
    }
}
echo "made\n";
