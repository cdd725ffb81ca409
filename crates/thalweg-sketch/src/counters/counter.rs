//! Counter types.

use std::fmt::Debug;

/// A counter type: `i32` for packets, `i64` for bytes.
pub trait Counter:
    sealed::Sealed + Copy + Debug + Default + Ord + Send + Sync + TryFrom<i64> + bytemuck::Pod
{
    /// The size in bytes.
    const BYTES: usize;

    /// Returns the sum, or `None` if it is out of range.
    fn checked_plus(self, weight: i64) -> Option<Self>;

    /// Returns the sum, which the caller knows to be in range.
    fn plus_unchecked(self, weight: Self) -> Self;

    /// Returns `weight`, which the caller knows to be in range, and its negation.
    fn both_signs(weight: i64) -> [Self; 2];

    /// Returns the number or its negation; the minimum becomes the maximum. Branch-free: signs are unpredictable.
    fn signed(self, minus: bool) -> Self;

    /// Returns the midpoint of two numbers.
    fn midpoint(self, other: Self) -> Self;

    /// Returns the limit of the range on the side of `weight`.
    fn limit(weight: i64) -> Self;

    /// Returns the nearest value in range, and whether it was clamped.
    fn saturate(value: f64) -> (Self, bool);

    /// Returns the value as an `i64`.
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
    fn checked_plus(self, weight: i64) -> Option<i32> {
        let sum = i64::from(self).saturating_add(weight);
        let cut = sum as i32;
        (i64::from(cut) == sum).then_some(cut)
    }

    #[inline(always)]
    fn plus_unchecked(self, weight: i32) -> i32 {
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
    fn midpoint(self, other: i32) -> i32 {
        ((i64::from(self) + i64::from(other)) >> 1) as i32
    }

    fn limit(weight: i64) -> i32 {
        if weight < 0 { i32::MIN } else { i32::MAX }
    }

    fn saturate(value: f64) -> (i32, bool) {
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

    /// A weight at a limit of `i64` was already clamped: a product with 1/p, or the negation of `i64::MIN`.
    #[inline(always)]
    fn checked_plus(self, weight: i64) -> Option<i64> {
        let is_cut = weight.unsigned_abs() >= i64::MAX as u64;
        if is_cut { None } else { self.checked_add(weight) }
    }

    #[inline(always)]
    fn plus_unchecked(self, weight: i64) -> i64 {
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
    fn midpoint(self, other: i64) -> i64 {
        ((i128::from(self) + i128::from(other)) >> 1) as i64
    }

    fn limit(weight: i64) -> i64 {
        if weight < 0 { i64::MIN } else { i64::MAX }
    }

    fn saturate(value: f64) -> (i64, bool) {
        let rounded = value.round();
        // 2^63 is the first value out of range; -2^63 is the last in range.
        let too_large = 9_223_372_036_854_775_808.0;
        (rounded as i64, rounded >= too_large || rounded < -too_large)
    }

    #[inline(always)]
    fn get(self) -> i64 {
        self
    }
}
