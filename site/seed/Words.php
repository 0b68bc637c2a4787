<?php
/** English-looking text: sentences of common words, some of them far more common than others. */
final class Words
{
    private const COMMON = 'the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one were all their there been if more when will would who so no out up into than them can only other new some time could these two may first then do any like my now over such our man me even most made after also did many before must through years where much your way well down should because each just those people how too little state good very make world still own see men work long here get both between life being under never day same another know year while last might us great old off come since against go came right used take three';
    private const TOPIC = 'harbour garden recipe kitchen bicycle mountain river camera photograph journey railway station winter summer weather market bakery bread coffee teapot workshop timber hammer engine battery server backup database network storage mirror snapshot latency cable printer keyboard letter novel library chapter author museum painting gallery theatre concert piano guitar violin melody festival village island lighthouse anchor sailor vessel cargo captain voyage compass horizon forest meadow orchard apple cherry walnut pepper saffron vinegar butter flour oven candle lantern blanket window staircase cellar attic chimney roof gutter fence gate bridge tunnel canal ferry tram airport luggage passport postcard souvenir calendar morning evening midnight shadow silver copper marble granite leather cotton linen ribbon button pocket jacket umbrella puddle thunder lightning sunshine breeze pasture shepherd falcon otter badger hedgehog sparrow salmon oyster lobster lantern beehive honey clover willow birch cedar maple ivy fern moss pebble boulder glacier valley canyon desert oasis camel caravan pottery weaving carving sketch portrait negative shutter aperture exposure tripod filter lens archive ledger invoice budget harvest tractor plough barn stable saddle bridle';
    private const DOING = 'builds repairs remembers carries measures collects describes prefers follows discovers replaces compares explains prepares photographs restores paints cooks writes reads plants gathers polishes borrows returns visits crosses climbs watches records publishes translates designs tests improves simplifies';
    private const LIKE = 'quiet bright narrow ancient sturdy delicate generous stubborn careful sudden gentle hollow crooked polished weathered forgotten familiar distant practical ordinary remarkable seasonal local portable patient reliable curious modest spacious fragile wooden golden northern southern coastal rural handmade second-hand half-finished';
    private const NAMES = 'Anna Ben Clara David Emma Felix Greta Henry Ida Jonas Kate Leo Maria Noah Olivia Paul Rosa Simon Tessa Victor Wanda Yusuf Zoe Amir Bianca Carlos Dora Elias Fiona Gustav Hana Ivan Julia Karim Lena Marco Nina Oscar Petra Quentin Rita Samir Tilda Ulrich Vera Walter';
    private const FAMILY = 'Archer Baker Carter Dalton Ellis Fisher Granger Hartley Ingram Jansen Keller Larsen Mason Novak Osborne Parker Quigley Rossi Sanders Turner Underwood Vance Weaver Young Zimmer Almeida Brandt Costa Dupont Eriksen Fuchs Gallo Haas Ibsen Jovic Kovacs Lindt Moreau Nagy Okafor';

    private array $common;
    private array $topic;
    private array $doing;
    private array $like;
    private array $sentences = [];
    private array $names;
    private array $family;

    public function __construct(private Dice $dice, int $sentences = 8000)
    {
        foreach (['common', 'topic', 'doing', 'like', 'names', 'family'] as $kind) {
            $this->$kind = explode(' ', constant('self::' . strtoupper($kind)));
        }
        for ($i = 0; $i < $sentences; $i++) {
            $this->sentences[] = $this->make_sentence();
        }
    }

    /** $count words that name something, for titles, terms and addresses. */
    public function title(int $count): string
    {
        $words = [];
        for ($i = 0; $i < $count; $i++) {
            $words[] = $this->dice->chance(0.35) ? $this->dice->pick($this->like) : $this->dice->pick($this->topic);
        }
        return ucfirst(implode(' ', $words));
    }

    public function topic(): string
    {
        return $this->dice->pick($this->topic);
    }

    /** @return array{string, string} First and family name. */
    public function name(): array
    {
        return [$this->dice->pick($this->names), $this->dice->pick($this->family)];
    }

    public function sentence(): string
    {
        return $this->dice->pick($this->sentences);
    }

    public function sentences(int $count): string
    {
        $text = [];
        for ($i = 0; $i < $count; $i++) {
            $text[] = $this->dice->pick($this->sentences);
        }
        return implode(' ', $text);
    }

    private function make_sentence(): string
    {
        $words = [];
        $count = $this->dice->between(6, 22);
        for ($i = 0; $i < $count; $i++) {
            $throw = $this->dice->between(0, 99);
            $words[] = match (true) {
                $throw < 55 => $this->common[$this->dice->skewed(count($this->common), 1.8)],
                $throw < 78 => $this->dice->pick($this->topic),
                $throw < 88 => $this->dice->pick($this->doing),
                $throw < 97 => $this->dice->pick($this->like),
                $throw < 98 => (string) $this->dice->between(2, 2025),
                default => $this->dice->pick($this->names),
            };
            if ($i > 3 && $i < $count - 3 && $throw % 11 === 0) {
                $words[$i] .= ',';
            }
        }
        return ucfirst(implode(' ', $words)) . $this->dice->pick(['.', '.', '.', '.', '.', '!', '?']);
    }
}
