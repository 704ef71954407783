import { language, loadCatalogue } from './language.ts';
import { applyTheme } from './theme.ts';

applyTheme();
document.documentElement.lang = language;
// Constants of modules hold translated texts, so the rest of the dashboard is loaded after the catalogue.
void loadCatalogue()
  .then(() => import('./start-app.tsx'))
  .then(({ startApp }) => startApp());
