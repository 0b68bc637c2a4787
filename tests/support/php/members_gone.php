<?php
// Removes the subscribers of members.php.
require '/usr/share/plimsoll/seed/wordpress.php';
require ABSPATH . 'wp-admin/includes/user.php';
for ($n = 1; $n <= 40; $n++) {
    if ($id = username_exists("plimsoll-member-$n")) {
        wp_delete_user($id);
    }
}
echo "gone\n";
