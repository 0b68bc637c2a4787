<?php
/**
 * The media library. A pool of pictures goes through WordPress itself, which makes all their sizes; every attachment is one of
 * them under a name of its own, with bytes of its own, as if WordPress had made it.
 */
final class Pictures
{
    private const POOL = [
        [1600, 1200],
        [1920, 1080],
        [1200, 1600],
        [2048, 1365],
        [2400, 1600],
        [1280, 960],
        [3000, 2000],
        [1024, 768],
        [1600, 900],
        [4000, 3000],
    ];

    private string $uploads;
    private array $pool = [];
    public int $files = 0;
    public int $bytes = 0;

    public function __construct(private Dice $dice)
    {
        require_once ABSPATH . 'wp-admin/includes/image.php';
        $this->uploads = wp_get_upload_dir()['basedir'];
        $folder = $this->uploads . '/pool';
        wp_mkdir_p($folder);
        $painter = new Painter($dice);
        foreach (self::POOL as $i => [$width, $height]) {
            file_put_contents("$folder/pool$i.jpg", $painter->jpeg($width, $height));
            $made = wp_create_image_subsizes("$folder/pool$i.jpg", 0);
            $bytes = [];
            foreach (glob("$folder/pool$i*.jpg") as $file) {
                $bytes[basename($file)] = file_get_contents($file);
                unlink($file);
            }
            $this->pool[] = [$made, $bytes];
        }
        rmdir($folder);
    }

    /**
     * Puts one picture with all its sizes on the disk.
     *
     * @param string $month Like 2019/07.
     * @param string $name  File name without the ending.
     * @return array `_wp_attachment_metadata`.
     */
    public function put(string $month, string $name): array
    {
        $number = $this->dice->between(0, count($this->pool) - 1);
        [$meta, $bytes] = $this->pool[$number];
        $comment = "$month/$name " . $this->dice->hex(32);
        $rename = fn(string $file): string => $name . substr(basename($file), strlen("pool$number"));
        $folder = "$this->uploads/$month";
        is_dir($folder) || mkdir($folder, 0755, true);
        foreach ($bytes as $file => $jpeg) {
            $this->bytes += file_put_contents($folder . '/' . $rename($file), Painter::with_comment($jpeg, $comment));
            ++$this->files;
        }
        $more = strlen($comment) + 4;
        $meta['file'] = $month . '/' . $rename($meta['file']);
        $meta['filesize'] += $more;
        if (isset($meta['original_image'])) {
            $meta['original_image'] = $rename($meta['original_image']);
        }
        foreach ($meta['sizes'] as &$size) {
            $size['file'] = $rename($size['file']);
            $size['filesize'] += $more;
        }
        return $meta;
    }
}
