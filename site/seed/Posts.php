<?php
/** Posts with their pictures and revisions, and pages, in the order in which they were written. */
final class Posts
{
    private const COLUMNS = [
        'ID',
        'post_author',
        'post_date',
        'post_date_gmt',
        'post_content',
        'post_title',
        'post_excerpt',
        'post_status',
        'comment_status',
        'ping_status',
        'post_password',
        'post_name',
        'to_ping',
        'pinged',
        'post_modified',
        'post_modified_gmt',
        'post_content_filtered',
        'post_parent',
        'guid',
        'menu_order',
        'post_type',
        'post_mime_type',
        'comment_count',
    ];

    /** @var array<array{int, int, float}> Of each published post: id, Unix time, and how much it is talked about. */
    public array $published = [];
    /** @var int[] Ids of the pages. */
    public array $pages = [];

    private Table $posts;
    private Table $meta;
    private Table $relations;
    private int $last = 0;
    /** @var array<array{int, string, string}> What the gallery shows: id, address and caption of each picture. */
    private array $shown = [];
    private array $used = [];

    public function __construct(
        mysqli $db,
        private Dice $dice,
        private Words $words,
        private Users $users,
        private Terms $terms,
        private Pictures $pictures,
    ) {
        $this->posts = new Table($db, 'wp_posts', self::COLUMNS);
        $this->meta = new Table($db, 'wp_postmeta', ['post_id', 'meta_key', 'meta_value']);
        $this->relations = new Table($db, 'wp_term_relationships', ['object_id', 'term_taxonomy_id', 'term_order']);
    }

    public function fill(Plan $plan): void
    {
        for ($i = 0; $i < $plan->pages; $i++) {
            $this->page($i, Plan::instant($i / $plan->pages / 50));
        }
        $pictures = 0;
        $revisions = 0;
        for ($i = 0; $i < $plan->posts; $i++) {
            $way = ($i + 1) / $plan->posts;
            $share = fn(int $all, int $so_far): int => max(0, (int) round($all * $way) - $so_far);
            // Pictures and revisions come in lumps: none for most posts, several for some.
            $due_pictures = $share($plan->images, $pictures);
            $due_revisions = $share($plan->revisions, $revisions);
            $last = $i === $plan->posts - 1;
            $use = $last || $due_pictures >= 3 || $this->dice->chance(0.4) ? $due_pictures : 0;
            $keep = $last || $due_revisions >= 9 || $this->dice->chance(0.5) ? $due_revisions : 0;
            $pictures += $use;
            $revisions += $keep;
            $this->post(Plan::instant($way - $this->dice->fraction() / $plan->posts), $use, $keep);
        }
        if ($plan->gallery_images) {
            $this->gallery(array_slice($this->shown, 0, $plan->gallery_images), Plan::instant(1));
        }
    }

    /** Menu items: pages and categories under the menu `Main`. */
    public function menu(): void
    {
        foreach (array_slice($this->pages, 0, 6) as $place => $page) {
            $id = $this->row(
                ['post_title' => '', 'post_type' => 'nav_menu_item', 'menu_order' => $place + 1],
                Plan::instant(0.01),
            );
            foreach (
                [
                    '_menu_item_type' => 'post_type',
                    '_menu_item_menu_item_parent' => '0',
                    '_menu_item_object_id' => (string) $page,
                    '_menu_item_object' => 'page',
                    '_menu_item_target' => '',
                    '_menu_item_classes' => serialize(['']),
                    '_menu_item_xfn' => '',
                    '_menu_item_url' => '',
                ]
                as $key => $value
            ) {
                $this->meta->add($id, $key, $value);
            }
            $this->relations->add($id, $this->terms->menu, 0);
        }
    }

    public function flush(): void
    {
        $this->posts->flush();
        $this->meta->flush();
        $this->relations->flush();
    }

    private function page(int $i, int $instant): void
    {
        $title = $this->words->title(2);
        $parent = $i > 5 && $this->dice->chance(0.5) ? $this->dice->pick($this->pages) : 0;
        $blocks = (new Article($this->dice, $this->words))->blocks($this->dice->size(4000, 0.7, 800, 40000));
        $id = $this->row(
            [
                'post_title' => $title,
                'post_content' => implode("\n\n", $blocks),
                'post_type' => 'page',
                'post_parent' => $parent,
                'comment_status' => 'closed',
                'ping_status' => 'closed',
                'menu_order' => $i,
            ],
            $instant,
        );
        $this->meta->add($id, '_wp_page_template', 'default');
        $this->pages[] = $id;
    }

    /** A page that is all pictures, in front of the menu: some sites have one, and it is the one that takes long. */
    private function gallery(array $images, int $instant): void
    {
        $id = $this->row(
            [
                'post_title' => 'All pictures',
                'post_content' => (new Article($this->dice, $this->words))->gallery($images),
                'post_type' => 'page',
                'comment_status' => 'closed',
                'ping_status' => 'closed',
            ],
            $instant,
        );
        $this->meta->add($id, '_wp_page_template', 'default');
        array_unshift($this->pages, $id);
    }

    private function post(int $instant, int $pictures, int $revisions): void
    {
        $author = $this->users->writers[$this->dice->skewed(count($this->users->writers), 2.0)];
        $title = $this->words->title($this->dice->between(3, 8));
        $images = [];
        $ids = [];
        for ($n = 0; $n < $pictures; $n++) {
            [$ids[], $images[]] = $this->attachment($instant - 60 * ($pictures - $n), $author);
        }
        $blocks = (new Article($this->dice, $this->words))->blocks($this->dice->size(5000, 0.9, 2000, 100000), $images);
        $throw = $this->dice->between(0, 99);
        $status = match (true) {
            $throw < 94 => 'publish',
            $throw < 97 => 'draft',
            $throw < 98 => 'pending',
            default => 'private',
        };
        $modified = $instant + ($revisions ? 86400 * $this->dice->skewed(60, 3) + 3600 : 0);
        $id = $this->row(
            [
                'post_author' => $author,
                'post_content' => implode("\n\n", $blocks),
                'post_title' => $title,
                'post_excerpt' => $this->dice->chance(0.3) ? $this->words->sentences(2) : '',
                'post_status' => $status,
                'modified' => $modified,
            ],
            $instant,
        );
        foreach ($this->terms->some() as $term) {
            $this->relations->add($id, $term, 0);
        }
        $this->meta->add($id, '_edit_last', (string) $author);
        $this->meta->add($id, '_edit_lock', "$modified:$author");
        $this->meta->add($id, 'views', (string) $this->dice->size(300, 1.5, 3, 500000));
        $this->meta->add($id, '_seo_description', $this->words->sentence());
        if ($ids) {
            $this->meta->add($id, '_thumbnail_id', (string) $ids[0]);
        }
        for ($n = 1; $n <= $revisions; $n++) {
            // The text as it grew: a revision lacks what came later.
            $part = array_slice($blocks, 0, (int) ceil(count($blocks) * min(1, 0.4 + (0.6 * $n) / $revisions)));
            $this->row(
                [
                    'post_author' => $author,
                    'post_content' => implode("\n\n", $part),
                    'post_title' => $title,
                    'post_status' => 'inherit',
                    'comment_status' => 'closed',
                    'ping_status' => 'closed',
                    'post_name' => "$id-revision-v1",
                    'post_parent' => $id,
                    'post_type' => 'revision',
                ],
                $instant + intdiv(($modified - $instant) * $n, $revisions),
            );
        }
        if ('publish' === $status) {
            $this->published[] = [$id, $instant, $this->dice->fraction()];
        }
    }

    /** @return array{int, array{int, string, string}} The attachment's id, and what an article shows of it. */
    private function attachment(int $instant, int $author): array
    {
        $title = $this->words->title(2);
        $name = sanitize_title($title) . '-' . ($this->last + 1);
        $meta = $this->pictures->put(gmdate('Y/m', $instant), $name);
        $caption = $this->words->title(5);
        $id = $this->row(
            [
                'post_author' => $author,
                'post_title' => $title,
                'post_name' => $name,
                'post_excerpt' => $caption,
                'post_status' => 'inherit',
                'ping_status' => 'closed',
                'guid' => 'http://www.example.org/wp-content/uploads/' . $meta['file'],
                'post_type' => 'attachment',
                'post_mime_type' => 'image/jpeg',
            ],
            $instant,
        );
        $this->meta->add($id, '_wp_attached_file', $meta['file']);
        $this->meta->add($id, '_wp_attachment_metadata', serialize($meta));
        $this->meta->add($id, '_wp_attachment_image_alt', $caption);
        $address = fn(string $size): string => '/wp-content/uploads/' .
            dirname($meta['file']) .
            '/' .
            ($meta['sizes'][$size]['file'] ?? basename($meta['file']));
        $this->shown[] = [$id, $address('medium'), $caption];
        return [$id, [$id, $address('large'), $caption]];
    }

    /** Adds a row; what $values does not say is as for a published post. */
    private function row(array $values, int $instant): int
    {
        $id = ++$this->last;
        $date = Plan::date($instant);
        $modified = Plan::date($values['modified'] ?? $instant);
        $status = $values['post_status'] ?? 'publish';
        $values += [
            'ID' => $id,
            'post_author' => 1,
            'post_status' => 'publish',
            'comment_status' => 'open',
            'ping_status' => 'open',
            'post_parent' => 0,
            'menu_order' => 0,
            'comment_count' => 0,
            'post_type' => 'post',
            'post_name' => in_array($status, ['draft', 'pending'], true)
                ? ''
                : $this->slug($values['post_title'] ?: (string) $id, $id),
            'post_date' => $date,
            'post_modified' => $modified,
            'guid' => "http://www.example.org/?p=$id",
        ];
        $values += [
            // WordPress gives drafts their date when they are published.
            'post_date_gmt' => in_array($status, ['draft', 'pending'], true) ? '0000-00-00 00:00:00' : $date,
            'post_modified_gmt' => $modified,
        ];
        $this->posts->add(...array_map(fn(string $column) => $values[$column] ?? '', self::COLUMNS));
        return $id;
    }

    private function slug(string $title, int $id): string
    {
        $slug = sanitize_title($title);
        if (isset($this->used[$slug])) {
            $slug .= "-$id";
        }
        $this->used[$slug] = true;
        return $slug;
    }
}
