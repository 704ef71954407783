import { buildIn } from './patch.ts';

/** Watches the folder of a source only, not those below it. */
buildIn({
  name: 'subfolders-unwatched',
  module: 'features/knowledge/sources/folder-watch.ts',
  replace: [{ from: "const wanted = new Set(['', ...folders]);", to: "const wanted = new Set(['']);" }],
});
