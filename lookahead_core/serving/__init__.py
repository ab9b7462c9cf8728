"""Many callers at once: the calls, the scheduler, trees kept between calls, and results as JSON."""
