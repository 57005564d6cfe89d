//! Inputs made from inputs: bytes flipped, parts taken out, doubled, moved or put together with another's. Decided by a seed
//! alone, so that what was found once is found again.

/// An endless row of them.
#[derive(Debug)]
pub struct Mutants<'c> {
    corpus: &'c [(String, Vec<u8>)],
    state: u64,
}

/// What parsers stumble over.
const BITS: [&[u8]; 24] = [
    b"\0",
    b"\n",
    b"\r\n",
    b"\t",
    b"\"",
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b": ",
    b"- ",
    b"#",
    b"&a ",
    b"*a",
    b"${{ ",
    b" }}",
    b"..",
    b"/",
    b"\xff\xfe",
    b"\xf0\x9f\x92\xa9",
    b"9999999999999999999",
    b"-1",
    b"\xe2\x80\xae",
];

/// No input grows beyond it.
const MOST: usize = 1 << 16;

impl<'c> Mutants<'c> {
    /// `corpus` must not be empty.
    pub fn new(corpus: &'c [(String, Vec<u8>)], seed: u64) -> Self {
        Self { corpus, state: seed.wrapping_mul(2).wrapping_add(1) }
    }

    /// SplitMix64.
    fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next_number() % bound as u64) as usize }
    }

    fn part(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let (a, b) = (self.below(bytes.len() + 1), self.below(bytes.len() + 1));
        let (from, to) = (a.min(b), a.max(b));
        // Short parts far more often than long ones.
        if self.below(4) == 0 { from..to } else { from..to.min(from + 16) }
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        match self.below(7) {
            0 => {
                let at = self.below(bytes.len());
                let bit = self.below(8);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            1 => {
                let part = self.part(bytes);
                bytes.drain(part);
            }
            2 | 3 => {
                let (at, bit) = (self.below(bytes.len() + 1), self.below(BITS.len()));
                bytes.splice(at..at, BITS[bit].iter().copied());
            }
            4 => {
                let part = self.part(bytes);
                let times = 1 + self.below(40);
                let repeated = bytes[part.clone()].repeat(times);
                bytes.splice(part.end..part.end, repeated);
            }
            5 => {
                let other = self.below(self.corpus.len());
                let other = &self.corpus[other].1;
                let part = self.part(other);
                let at = self.below(bytes.len() + 1);
                bytes.splice(at..at, other[part].iter().copied());
            }
            _ => {
                let length = self.below(bytes.len() + 1);
                bytes.truncate(length);
            }
        }
        bytes.truncate(MOST);
    }
}

impl Iterator for Mutants<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let at = self.below(self.corpus.len());
        let mut bytes = self.corpus.get(at)?.1.clone();
        for _ in 0..=self.below(5) {
            self.change(&mut bytes);
        }
        Some(bytes)
    }
}
