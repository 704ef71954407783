import { language, loadCatalogue } from './language.ts';
import { applyTheme } from './theme.ts';

applyTheme();
document.documentElement.lang = language;
// Constants of modules hold translated texts, so the rest of the dashboard is loaded after the catalogue.
void Promise.all([loadCatalogue(), import('./packages.ts')])
  .then(() => import('./start-app.tsx'))
  .then(({ startApp }) => startApp());
