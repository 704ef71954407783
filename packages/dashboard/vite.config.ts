import { defineConfig, type Plugin } from 'vite';

/** Names the icons in the manifest as the build does; Vite leaves it as it is. */
const iconsOfManifest: Plugin = {
  name: 'icons-of-manifest',
  generateBundle(_options, bundle) {
    const assets = Object.values(bundle).filter((file) => file.type === 'asset');
    const manifest = assets.find(({ fileName }) => fileName.endsWith('.webmanifest'));
    if (manifest === undefined) throw new Error('The build has no manifest');
    manifest.source = manifest.source.toString().replaceAll(/"\.\/([\w.-]+)"/g, (_found, name: string) => {
      const icon = assets.find(({ names }) => names.includes(name));
      if (icon === undefined) throw new Error(`The manifest names ${name}, which is not in the build`);
      return JSON.stringify(`/${icon.fileName}`);
    });
  },
};

/** Lets the browser fetch what the entry loads along with the entry, instead of after it. */
const partsOfPage: Plugin = {
  name: 'parts-of-page',
  transformIndexHtml: {
    order: 'post',
    handler: (_html, { bundle = {} }) =>
      Object.values(bundle)
        .filter(({ type, name }) => type === 'chunk' && (name === 'packages' || name === 'app'))
        .map(({ fileName }) => ({ tag: 'link', attrs: { rel: 'modulepreload', crossorigin: true, href: `/${fileName}` }, injectTo: 'head' })),
  },
};

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  // The content security policy allows neither inline scripts nor data URLs for scripts and styles.
  build: {
    target: 'esnext',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      // What opens first is three files: the entry with the language, the packages, and the rest, instead of a file for each module that
      // pages share.
      output: {
        codeSplitting: {
          groups: [
            { name: 'entry', test: /src\/main\.tsx$/, priority: 3 },
            { name: 'packages', test: /src\/packages\.ts$/, priority: 2 },
            { name: 'app', test: /src\/start-app\.tsx$/, priority: 1 },
          ],
        },
      },
      // A busy machine would add a warning about slow plugins to what a build says.
      checks: { bundlerTimings: false },
      // "use client" in packages is for server rendering; here everything runs in the browser.
      onwarn: (warning, warn) => (warning.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : warn(warning)),
    },
  },
  plugins: [iconsOfManifest, partsOfPage],
  oxc: { jsx: { runtime: 'automatic' } },
  logLevel: 'warn',
});
