import { buildIn } from './patch.ts';

/** The gate looks at a text as a reader sees it, without comments and code, and writes it as it came. */
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
