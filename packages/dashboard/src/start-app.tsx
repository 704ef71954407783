import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { takeToken } from './data/token.ts';
import { keepFocus } from './ui/keep-focus.ts';

export function startApp(): void {
  const place = document.getElementById('app');
  if (place === null) throw new Error('index.html has no root element for the dashboard.');
  keepFocus(place);
  createRoot(place).render(<App initialToken={takeToken()} />);
}
