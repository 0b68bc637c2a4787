<?php
/** Pictures that weigh what photographs weigh: soft light, hard edges, and grain. */
final class Painter
{
    private GdImage $grain;

    public function __construct(private Dice $dice)
    {
        $this->grain = imagecreatetruecolor(256, 256);
        for ($y = 0; $y < 256; $y++) {
            for ($x = 0; $x < 256; $x++) {
                $grey = $dice->between(0, 255);
                imagesetpixel($this->grain, $x, $y, ($grey << 16) | ($grey << 8) | $grey);
            }
        }
    }

    public function paint(int $width, int $height): GdImage
    {
        $light = imagecreatetruecolor(24, 18);
        for ($y = 0; $y < 18; $y++) {
            for ($x = 0; $x < 24; $x++) {
                imagesetpixel($light, $x, $y, $this->colour());
            }
        }
        $picture = imagescale($light, $width, $height, IMG_BICUBIC_FIXED);
        for ($i = 0; $i < 60; $i++) {
            $x = $this->dice->between(0, $width);
            $y = $this->dice->between(0, $height);
            $extent = $this->dice->between($width >> 6, $width >> 2);
            $colour = ($this->dice->between(20, 100) << 24) | $this->colour();
            if ($i % 3) {
                imagefilledellipse(
                    $picture,
                    $x,
                    $y,
                    $extent,
                    $this->dice->between($height >> 6, $height >> 2),
                    $colour,
                );
            } else {
                imagefilledpolygon(
                    $picture,
                    [$x, $y, $x + $extent, $y + ($extent >> 1), $x - ($extent >> 1), $y + $extent],
                    $colour,
                );
            }
        }
        for ($y = 0; $y < $height; $y += 256) {
            for ($x = 0; $x < $width; $x += 256) {
                imagecopymerge($picture, $this->grain, $x, $y, 0, 0, 256, 256, 9);
            }
        }
        return $picture;
    }

    /** The picture as a JPEG. */
    public function jpeg(int $width, int $height): string
    {
        ob_start();
        imagejpeg($this->paint($width, $height), null, 87);
        return ob_get_clean();
    }

    /** A JPEG with a comment after its first marker: other bytes, the same pixels. */
    public static function with_comment(string $jpeg, string $comment): string
    {
        return substr($jpeg, 0, 2) . "\xFF\xFE" . pack('n', strlen($comment) + 2) . $comment . substr($jpeg, 2);
    }

    private function colour(): int
    {
        return $this->dice->between(0, 0xffffff);
    }
}
