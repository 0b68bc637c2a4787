<?php
/** The accounts: five whose names are known, and the readers and writers of ten years. */
final class Users
{
    private const KNOWN = [
        'admin' => 'administrator',
        'editor' => 'editor',
        'author' => 'author',
        'contributor' => 'contributor',
        'subscriber' => 'subscriber',
    ];
    private const LEVELS = ['administrator' => 10, 'editor' => 7, 'author' => 2, 'contributor' => 1, 'subscriber' => 0];

    /** @var int[] Those who write posts. */
    public array $writers = [];
    /** @var array<int, array{string, string}> Name and e-mail by id. */
    public array $people = [];

    public function __construct(private mysqli $db, private Dice $dice, private Words $words) {}

    public function fill(int $count): void
    {
        $users = new Table($this->db, 'wp_users', [
            'ID',
            'user_login',
            'user_pass',
            'user_nicename',
            'user_email',
            'user_url',
            'user_registered',
            'user_activation_key',
            'user_status',
            'display_name',
        ]);
        $meta = new Table($this->db, 'wp_usermeta', ['user_id', 'meta_key', 'meta_value']);
        $hash = self::password();
        $known = array_keys(self::KNOWN);
        for ($id = 1; $id <= $count; $id++) {
            [$first, $last] = $this->words->name();
            $login = $known[$id - 1] ?? strtolower("$first.$last") . $id;
            $role = self::KNOWN[$login] ?? $this->role();
            $name = $id <= count($known) ? ucfirst($login) : "$first $last";
            $email = "$login@example.org";
            $registered = Plan::date(Plan::instant($id <= count($known) ? 0 : ($id - 1) / $count));
            $url = $this->dice->chance(0.2) ? 'https://' . strtolower($last) . '.example.net/' : '';
            $users->add($id, $login, $hash, sanitize_title($login), $email, $url, $registered, '', 0, $name);
            $this->people[$id] = [$name, $email];
            if (self::LEVELS[$role] >= 2) {
                $this->writers[] = $id;
            }
            foreach (
                [
                    'nickname' => $login,
                    'first_name' => $first,
                    'last_name' => $last,
                    'description' => $this->dice->chance(0.3) ? $this->words->sentences(2) : '',
                    'rich_editing' => 'true',
                    'syntax_highlighting' => 'true',
                    'comment_shortcuts' => 'false',
                    'admin_color' => 'fresh',
                    'use_ssl' => '0',
                    'show_admin_bar_front' => 'true',
                    'locale' => '',
                    'wp_capabilities' => serialize([$role => true]),
                    'wp_user_level' => (string) self::LEVELS[$role],
                    'dismissed_wp_pointers' => 'theme_editor_notice,plugin_editor_notice',
                    'show_welcome_panel' => '0',
                ]
                as $key => $value
            ) {
                $meta->add($id, $key, $value);
            }
        }
        $users->flush();
        $meta->flush();
    }

    /** The hash of `plimsoll-clone`, with a salt that does not change. */
    private static function password(): string
    {
        require_once ABSPATH . WPINC . '/class-phpass.php';
        return (new PasswordHash(8, true))->crypt_private('plimsoll-clone', '$P$Bplimsoll');
    }

    private function role(): string
    {
        $throw = $this->dice->between(0, 99);
        return match (true) {
            $throw < 1 => 'editor',
            $throw < 6 => 'author',
            $throw < 10 => 'contributor',
            default => 'subscriber',
        };
    }
}
