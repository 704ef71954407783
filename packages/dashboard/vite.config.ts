import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  // The page allows itself neither inline scripts nor data URLs of scripts and styles.
  build: { target: 'esnext', assetsInlineLimit: 0, cssCodeSplit: false, modulePreload: { polyfill: false }, reportCompressedSize: false },
  oxc: { jsx: { runtime: 'automatic' } },
  logLevel: 'warn',
});
