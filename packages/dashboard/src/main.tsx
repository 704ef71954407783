import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { takeToken } from './data/token.ts';
import { language } from './language.ts';
import { applyTheme } from './theme.ts';

applyTheme();
document.documentElement.lang = language;
const place = document.getElementById('app');
if (place === null) throw new Error('index.html has no root element for the dashboard.');
createRoot(place).render(<App initialToken={takeToken()} />);
