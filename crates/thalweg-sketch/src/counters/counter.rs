//! The type of a counter.

use std::fmt::Debug;

/// The type of a counter: `i32` for packets, `i64` for bytes.
pub trait Counter:
    sealed::Sealed + Copy + Debug + Default + Ord + Send + Sync + TryFrom<i64> + bytemuck::Pod
{
    /// Its size in bytes.
    const BYTES: usize;

    /// The sum, or `None` if it is out of range.
    fn plus(self, weight: i64) -> Option<Self>;

    /// The sum of numbers that are known not to leave the range.
    fn plus_in_range(self, weight: Self) -> Self;

    /// A number that is known to be in range, and its opposite.
    fn both_signs(weight: i64) -> [Self; 2];

    /// The number, or its opposite; the lowest has the highest. Without a branch: nobody predicts signs.
    fn signed(self, minus: bool) -> Self;

    /// Half-way between two.
    fn middle(self, other: Self) -> Self;

    /// The end of the range on the side of `weight`.
    fn end(weight: i64) -> Self;

    /// The value nearest to `value`, and whether it had to be moved into range.
    fn nearest(value: f64) -> (Self, bool);

    /// The value.
    fn get(self) -> i64;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

impl Counter for i32 {
    const BYTES: usize = 4;

    #[inline(always)]
    fn plus(self, weight: i64) -> Option<i32> {
        let sum = i64::from(self).saturating_add(weight);
        let cut = sum as i32;
        (i64::from(cut) == sum).then_some(cut)
    }

    #[inline(always)]
    fn plus_in_range(self, weight: i32) -> i32 {
        self.wrapping_add(weight)
    }

    #[inline(always)]
    fn both_signs(weight: i64) -> [i32; 2] {
        [weight as i32, (weight as i32).wrapping_neg()]
    }

    #[inline(always)]
    fn signed(self, minus: bool) -> i32 {
        let mask = -i32::from(minus);
        (self ^ mask).saturating_sub(mask)
    }

    #[inline(always)]
    fn middle(self, other: i32) -> i32 {
        ((i64::from(self) + i64::from(other)) >> 1) as i32
    }

    fn end(weight: i64) -> i32 {
        if weight < 0 { i32::MIN } else { i32::MAX }
    }

    fn nearest(value: f64) -> (i32, bool) {
        let rounded = value.round();
        (rounded as i32, rounded < f64::from(i32::MIN) || rounded > f64::from(i32::MAX))
    }

    #[inline(always)]
    fn get(self) -> i64 {
        i64::from(self)
    }
}

impl Counter for i64 {
    const BYTES: usize = 8;

    /// A weight at an end of its type was cut there on its way: the product with 1/p, or the opposite of the least.
    #[inline(always)]
    fn plus(self, weight: i64) -> Option<i64> {
        let is_cut = weight.unsigned_abs() >= i64::MAX as u64;
        if is_cut { None } else { self.checked_add(weight) }
    }

    #[inline(always)]
    fn plus_in_range(self, weight: i64) -> i64 {
        self.wrapping_add(weight)
    }

    #[inline(always)]
    fn both_signs(weight: i64) -> [i64; 2] {
        [weight, weight.wrapping_neg()]
    }

    #[inline(always)]
    fn signed(self, minus: bool) -> i64 {
        let mask = -i64::from(minus);
        (self ^ mask).saturating_sub(mask)
    }

    #[inline(always)]
    fn middle(self, other: i64) -> i64 {
        ((i128::from(self) + i128::from(other)) >> 1) as i64
    }

    fn end(weight: i64) -> i64 {
        if weight < 0 { i64::MIN } else { i64::MAX }
    }

    fn nearest(value: f64) -> (i64, bool) {
        let rounded = value.round();
        // 2^63 is the first that does not fit; -2^63 is the last that does.
        let too_large = 9_223_372_036_854_775_808.0;
        (rounded as i64, rounded >= too_large || rounded < -too_large)
    }

    #[inline(always)]
    fn get(self) -> i64 {
        self
    }
}
