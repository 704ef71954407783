import { buildIn } from './patch.ts';

/** Scans a text as a reader sees it, without comments and code, but stores it unchanged. */
buildIn({
  name: 'scans-what-is-shown',
  module: 'features/knowledge/skills/vetting/vet.ts',
  replace: [
    {
      from: "const text = textOf(bytes) ?? '';",
      to: "const text = (textOf(bytes) ?? '').replace(/<!--[^]*?-->|```[^]*?```/g, '');",
    },
  ],
});
