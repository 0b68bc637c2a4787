<?php
/** Options as an old site has them: what its plugins left behind, much of it loaded with every page. */
final class Options
{
    public function __construct(private mysqli $db, private Dice $dice, private Words $words) {}

    public function fill(Terms $terms): void
    {
        $this->db->query(
            "DELETE FROM wp_options WHERE option_name LIKE '%transient%' OR option_name IN ('recovery_keys', 'fresh_site', 'can_compress_scripts', 'user_count')",
        );
        wp_cache_flush();
        $fixed = [
            'blogdescription' => 'Notes on ships, gardens and disks since 2015',
            'siteurl' => 'http://www.example.org',
            'home' => 'http://www.example.org',
            'thread_comments' => '1',
            'thread_comments_depth' => '5',
            'page_comments' => '1',
            'comments_per_page' => '50',
            'comment_moderation' => '0',
            'comment_previously_approved' => '0',
            'admin_email_lifespan' => '4102444800',
            'https_detection_errors' => [],
            'finished_updating_comment_type' => '1',
            'wp_force_deactivated_plugins' => [],
            'theme_mods_twentytwentyone' => [
                'nav_menu_locations' => ['primary' => $terms->menu],
                'custom_css_post_id' => -1,
            ],
            'cron' => self::cron(),
        ];
        foreach ($fixed as $name => $value) {
            update_option($name, $value);
        }
        flush_rewrite_rules(false);
        $this->db->query("DELETE FROM wp_options WHERE option_name LIKE '%transient%'");

        // Numbered after what WordPress's installer made, whose own numbers depend on what it tried.
        $this->db->query('SET @n = 0');
        $this->db->query('UPDATE wp_options SET option_id = option_id + 100000 ORDER BY option_id DESC');
        $this->db->query('UPDATE wp_options SET option_id = (@n := @n + 1) ORDER BY option_name');
        $this->left_behind((int) $this->db->query('SELECT MAX(option_id) FROM wp_options')->fetch_row()[0]);
    }

    /** WordPress's own events, all planned: else the first visitors would plan them, and each clone at another time. */
    private static function cron(): array
    {
        $every = [
            'recovery_mode_clean_expired_keys' => 'daily',
            'wp_privacy_delete_old_export_files' => 'hourly',
            'wp_version_check' => 'twicedaily',
            'wp_update_plugins' => 'twicedaily',
            'wp_update_themes' => 'twicedaily',
            'wp_https_detection' => 'twicedaily',
            'wp_update_user_counts' => 'twicedaily',
            'wp_site_health_scheduled_check' => 'weekly',
            'wp_delete_temp_updater_backups' => 'weekly',
            'wp_scheduled_delete' => 'daily',
            'delete_expired_transients' => 'daily',
            'wp_scheduled_auto_draft_delete' => 'daily',
        ];
        $events = [];
        foreach ($every as $hook => $schedule) {
            $interval = wp_get_schedules()[$schedule]['interval'];
            $events[$hook] = [md5(serialize([])) => ['schedule' => $schedule, 'args' => [], 'interval' => $interval]];
        }
        return [Plan::instant(1) => $events, 'version' => 2];
    }

    private function left_behind(int $last): void
    {
        $table = new Table($this->db, 'wp_options', ['option_id', 'option_name', 'option_value', 'autoload']);
        for ($i = 1; $i <= 400; $i++) {
            $values = [];
            for ($n = 1 + $this->dice->skewed(40, 3); $n > 0; $n--) {
                $values[$this->words->topic() . "_$n"] = $this->words->sentence();
            }
            $table->add(
                ++$last,
                $this->words->topic() . '_plugin_' . $i,
                serialize($values),
                $this->dice->chance(0.7) ? 'yes' : 'no',
            );
        }
        for ($i = 1; $i <= 300; $i++) {
            $name = $this->dice->hex(32);
            $table->add(
                ++$last,
                "_transient_timeout_feed_$name",
                (string) Plan::instant($this->dice->fraction()),
                'no',
            );
            $table->add(++$last, "_transient_feed_$name", serialize($this->words->sentences(12)), 'no');
        }
        $table->flush();
    }
}
