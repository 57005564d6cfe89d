// What lies over the page: the sheet of keys, or the palette; one at a time.
class Overlay {
  open = $state<'sheet' | 'palette' | null>(null);

  toggle(name: 'sheet' | 'palette'): void {
    this.open = this.open === name ? null : name;
  }

  close(): void {
    this.open = null;
  }
}

export const overlay = new Overlay();
