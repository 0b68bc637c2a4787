<?php
// Says how many pictures the media library has, and which of their files are not what WordPress believes.
require '/usr/share/plimsoll/seed/wordpress.php';
require_once ABSPATH . 'wp-admin/includes/image.php';
$pictures = get_posts(['post_type' => 'attachment', 'numberposts' => -1]);
foreach ($pictures as $picture) {
    $meta = wp_get_attachment_metadata($picture->ID);
    $file = get_attached_file($picture->ID);
    $files = [$file => $meta];
    foreach ($meta['sizes'] as $size) {
        $files[dirname($file) . '/' . $size['file']] = $size;
    }
    foreach ($files as $path => $said) {
        [$width, $height] = getimagesize($path);
        if ([$width, $height, filesize($path)] !== [$said['width'], $said['height'], $said['filesize']]) {
            echo "wrong: $path\n";
        }
    }
    if (wp_get_missing_image_subsizes($picture->ID) || !file_exists(wp_get_original_image_path($picture->ID))) {
        echo "missing: $file\n";
    }
}
echo count($pictures), "\n";
