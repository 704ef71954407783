import { defineConfig } from 'vite';

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
      // A busy machine would add a warning about slow plugins to what a build says.
      checks: { bundlerTimings: false },
      // "use client" in packages is for server rendering; here everything runs in the browser.
      onwarn: (warning, warn) => (warning.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : warn(warning)),
    },
  },
  oxc: { jsx: { runtime: 'automatic' } },
  logLevel: 'warn',
});
