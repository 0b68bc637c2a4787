<?php
/** Categories in two levels, and tags, of which few are used often. */
final class Terms
{
    /** @var int[] term_taxonomy_id of each category, and of each tag. */
    public array $categories = [];
    public array $tags = [];
    /** term_taxonomy_id of the menu. */
    public int $menu;

    private Table $terms;
    private Table $taxonomy;
    private int $last = 0;
    private array $used = [];

    public function __construct(private mysqli $db, private Dice $dice, private Words $words)
    {
        $this->terms = new Table($db, 'wp_terms', ['term_id', 'name', 'slug', 'term_group']);
        $this->taxonomy = new Table($db, 'wp_term_taxonomy', [
            'term_taxonomy_id',
            'term_id',
            'taxonomy',
            'description',
            'parent',
            'count',
        ]);
    }

    public function fill(int $categories, int $tags): void
    {
        $this->categories[] = $this->add('Uncategorized', 'category', 0);
        for ($i = 1; $i < $categories; $i++) {
            $this->categories[] = $this->add(
                $this->words->title(1 + ($i % 2)),
                'category',
                $i > 8 ? $this->categories[$this->dice->between(1, 8)] : 0,
            );
        }
        for ($i = 0; $i < $tags; $i++) {
            $this->tags[] = $this->add(strtolower($this->words->title(1 + ($i % 3))), 'post_tag', 0);
        }
        $this->menu = $this->add('Main', 'nav_menu', 0);
        $this->terms->flush();
        $this->taxonomy->flush();
    }

    /** Ids of the terms of one post. */
    public function some(): array
    {
        $found = [$this->categories[$this->dice->skewed(count($this->categories), 1.6)]];
        if ($this->dice->chance(0.3)) {
            $found[] = $this->dice->pick($this->categories);
        }
        for ($i = $this->dice->between(0, 8); $i > 0; $i--) {
            $found[] = $this->tags[$this->dice->skewed(count($this->tags), 2.5)];
        }
        return array_unique($found);
    }

    /** What a term's count says: how many published posts (or menu items) it has. */
    public function count(): void
    {
        $this->db->query(
            "UPDATE wp_term_taxonomy t LEFT JOIN (
				SELECT r.term_taxonomy_id id, COUNT(*) n FROM wp_term_relationships r JOIN wp_posts p ON p.ID = r.object_id
				WHERE p.post_status = 'publish' GROUP BY r.term_taxonomy_id) c ON c.id = t.term_taxonomy_id
			SET t.count = COALESCE(c.n, 0)",
        );
    }

    private function add(string $name, string $taxonomy, int $parent): int
    {
        $id = ++$this->last;
        $slug = sanitize_title($name);
        if (isset($this->used[$slug])) {
            $name .= " $id";
            $slug .= "-$id";
        }
        $this->used[$slug] = true;
        $this->terms->add($id, $name, $slug, 0);
        $this->taxonomy->add($id, $id, $taxonomy, '', $parent, 0);
        return $id;
    }
}
