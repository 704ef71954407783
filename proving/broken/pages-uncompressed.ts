import { buildIn } from './patch.ts';

/** Sends the files of the dashboard as they are, without compression. */
buildIn({
  name: 'pages-uncompressed',
  module: 'gateway/routes/dashboard.ts',
  replace: [{ from: "for (const encoding of ['br', 'gzip'] as const)", to: 'for (const encoding of [] as Encoding[])' }],
});
