<?php
/**
 * Plugin Name: Plimsoll: editor
 * Description: With SITE_EDITOR=classic the block editor is off and posts are written in the forms of old, as the Classic Editor plugin does.
 */

if ('classic' === getenv('SITE_EDITOR')) {
    add_filter('use_block_editor_for_post', '__return_false', 100);
    add_filter('use_block_editor_for_post_type', '__return_false', 100);
    add_filter('gutenberg_can_edit_post', '__return_false', 100);
    add_filter('use_widgets_block_editor', '__return_false', 100);
    remove_action('try_gutenberg_panel', 'wp_try_gutenberg_panel');
}
