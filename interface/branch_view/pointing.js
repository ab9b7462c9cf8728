// What is under the pointer or in focus. Passing over other rows on the way to somewhere else does not count.
const CHOICES = 'button[data-token], button[data-rest]';
const PASSING = 160;   // milliseconds: the pointer may be on its way over another row
const LEAVING = 300;

export class Pointing {
  // `changed` is called when something else is pointed at, or nothing.
  constructor(root, changed) {
    Object.assign(this, {root, changed, button: null, timer: 0});
    root.addEventListener('pointerover', event => this.over(event));
    root.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') this.aim(null, LEAVING); });
    root.addEventListener('contextmenu', event => this.hold(event));
    root.addEventListener('focusin', event => this.focus(event.target));
    root.addEventListener('focusout', event => { if (event.target === this.button) this.aim(null, 0); });
  }

  // Still there after a paint, which may have taken the element away?
  get current() {
    return this.button?.isConnected && !this.button.closest('[hidden]') ? this.button : null;
  }

  over(event) {
    if (event.pointerType === 'touch') return;
    if (event.target.closest('.note')) return clearTimeout(this.timer);
    const button = event.target.closest(CHOICES);
    const near = button && !button.closest('.others') && (!this.current || button.parentElement === this.current.parentElement);
    this.aim(button, near ? 0 : button ? PASSING : LEAVING);
  }

  aim(button, delay) {
    clearTimeout(this.timer);
    if (button === this.button) return;
    if (delay) this.timer = setTimeout(() => this.settle(button), delay);
    else this.settle(button);
  }

  settle(button) {
    this.button = button;
    this.changed();
  }

  // A finger that rests points without choosing.
  hold(event) {
    const button = event.target.closest(CHOICES);
    if (event.pointerType !== 'touch' || !button) return;
    event.preventDefault();
    this.aim(button, 0);
  }

  focus(target) {
    if (target.matches(CHOICES) && target.matches(':focus-visible')) this.aim(target, 0);
  }
}
