//! Chance with a memory: a seed says it all, so that a case that failed can be repeated.

/// A linear congruential generator: random enough, and every platform agrees.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Self(seed);
        // Seeds that follow each other begin alike.
        for _ in 0..4 {
            dice.next();
        }
        dice
    }

    /// From 0 up to 1.
    pub(super) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn is_lucky(&mut self, chance: f64) -> bool {
        self.fraction() < chance
    }

    /// From 1 to `most`.
    pub(super) fn up_to(&mut self, most: u32) -> u32 {
        1 + (self.fraction() * f64::from(most.max(1))) as u32
    }

    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.fraction() * choices.len() as f64) as usize]
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_it_all() {
        let throw = |seed| -> Vec<u32> {
            let mut dice = Dice::new(seed);
            (0..20).map(|_| dice.up_to(6)).collect()
        };
        assert_eq!(throw(7), throw(7));
        assert_ne!(throw(7), throw(8));
        assert!(throw(7).iter().all(|eyes| (1..=6).contains(eyes)));
    }
}
