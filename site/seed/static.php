<?php
/** The static part: `php static.php --seed 1`: a download of 500 MB that does not compress, and a set of pages for visitors. */
foreach (['Dice', 'Words', 'Painter'] as $class) {
    require __DIR__ . "/$class.php";
}
const DOWNLOAD_BYTES = 500_000_000;
const PAGES = 200;
const IMAGES = 60;
$said = getopt('', ['seed:']);
$seed = (int) $said['seed'];
$folder = (getenv('PLIMSOLL_DATA') ?: '/data') . '/static';
@mkdir("$folder/pages", 0755, true);

/** A tar archive of one file of chance, in gzip's stored blocks: chance does not compress. */
function write_download(string $path, int $seed): void
{
    $file = fopen($path, 'wb');
    $gzip = deflate_init(ZLIB_ENCODING_GZIP, ['level' => 0]);
    $header =
        str_pad('download.bin', 100, "\0") .
        "0000644\0" .
        "0000000\0" .
        "0000000\0" .
        sprintf("%011o\0", DOWNLOAD_BYTES) .
        "12345670123\0" .
        '        ' .
        '0' .
        str_repeat("\0", 100) .
        "ustar\00000" .
        str_repeat("\0", 247);
    $sum = array_sum(array_map('ord', str_split($header)));
    $header = substr_replace($header, sprintf("%06o\0 ", $sum), 148, 8);
    fwrite($file, deflate_add($gzip, $header, ZLIB_NO_FLUSH));
    $key = hash('sha256', "plimsoll/$seed/download", true);
    $zeroes = str_repeat("\0", 1 << 20);
    for ($done = 0; $done < DOWNLOAD_BYTES; $done += 1 << 20) {
        $chunk = openssl_encrypt($zeroes, 'aes-256-ctr', $key, OPENSSL_RAW_DATA, pack('JJ', $done >> 20, 0));
        fwrite($file, deflate_add($gzip, substr($chunk, 0, DOWNLOAD_BYTES - $done), ZLIB_NO_FLUSH));
    }
    $padding = ((512 - (DOWNLOAD_BYTES % 512)) % 512) + 1024;
    fwrite($file, deflate_add($gzip, str_repeat("\0", $padding), ZLIB_FINISH));
    fclose($file);
}

write_download("$folder/download.tar.gz", $seed);

$dice = new Dice($seed, 'static');
$words = new Words($dice, 2000);
$painter = new Painter($dice);
for ($i = 1; $i <= 4; $i++) {
    $css = "body { font-family: sans-serif; max-width: 60em; margin: auto; }\n";
    for ($n = 0; $n < 120 * $i; $n++) {
        $css .= sprintf(
            ".%s-%d { color: #%s; margin: %dpx; padding: %dpx; }\n",
            $words->topic(),
            $n,
            $dice->hex(6),
            $dice->between(0, 40),
            $dice->between(0, 40),
        );
    }
    file_put_contents("$folder/pages/style$i.css", $css);
}
for ($i = 1; $i <= 6; $i++) {
    $js = "'use strict';\n";
    for ($n = 0; $n < 200 * $i; $n++) {
        $js .= sprintf("const %s%d_%d = %s;\n", $words->topic(), $i, $n, json_encode($words->sentence()));
    }
    file_put_contents("$folder/pages/script$i.js", $js);
}
for ($i = 1; $i <= IMAGES; $i++) {
    [$width, $height] = $dice->pick([[320, 240], [640, 480], [800, 600], [1024, 768]]);
    file_put_contents("$folder/pages/image$i.jpg", $painter->jpeg($width, $height));
}
for ($i = 0; $i < PAGES; $i++) {
    $body = '';
    for ($n = $dice->size(20, 0.8, 5, 200); $n > 0; $n--) {
        $body .= '<p>' . $words->sentences($dice->between(2, 8)) . "</p>\n";
    }
    for ($n = $dice->between(2, 8); $n > 0; $n--) {
        $body .= sprintf("<p><img src=\"image%d.jpg\" alt=\"%s\"></p>\n", $dice->between(1, IMAGES), $words->title(3));
    }
    for ($n = 0; $n < 12; $n++) {
        $body .= sprintf("<p><a href=\"page%d.html\">%s</a></p>\n", $dice->between(1, PAGES - 1), $words->title(4));
    }
    $title = $words->title(4);
    $head = '';
    foreach ([1, 2 + ($i % 3)] as $n) {
        $head .= "<link rel=\"stylesheet\" href=\"style$n.css\">\n";
    }
    foreach ([1, 2, 3 + ($i % 4)] as $n) {
        $head .= "<script src=\"script$n.js\" defer></script>\n";
    }
    $name = 0 === $i ? 'index' : "page$i";
    file_put_contents(
        "$folder/pages/$name.html",
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>$title</title>\n$head</head>\n<body>\n<h1>$title</h1>\n$body</body>\n</html>\n",
    );
}
