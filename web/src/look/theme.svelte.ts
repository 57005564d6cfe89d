// Dark, light, or as the system has it.
export const THEMES = ['system', 'dark', 'light'] as const;
export type Theme = (typeof THEMES)[number];

const PLACE = 'laneway.theme';

class Look {
  theme = $state<Theme>(kept());

  choose(theme: Theme): void {
    this.theme = theme;
    try {
      localStorage.setItem(PLACE, theme);
    } catch {
      // Then it holds for as long as the tab lives.
    }
    this.apply();
  }

  next(): void {
    this.choose(THEMES[(THEMES.indexOf(this.theme) + 1) % THEMES.length] ?? 'system');
  }

  apply(): void {
    const root = document.documentElement;
    if (this.theme === 'system') delete root.dataset.theme;
    else root.dataset.theme = this.theme;
  }
}

function kept(): Theme {
  try {
    const word = localStorage.getItem(PLACE);
    return THEMES.find((theme) => theme === word) ?? 'system';
  } catch {
    return 'system';
  }
}

export const look = new Look();
