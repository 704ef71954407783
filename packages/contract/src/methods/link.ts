import * as z from 'zod';
import { method } from '../method.ts';

export const link = {
  'link.process': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Reads the web pages that a text links to and appends their text, fenced as text from outside.',
    description:
      'Markdown links come first, then bare addresses, each once; only http and https, only public addresses, checked at every redirect. ' +
      'A page that cannot be read is named in `errors` and changes nothing else.',
    params: () =>
      z.strictObject({
        text: z.string().min(1).max(100_000),
        maxLinks: z.int().min(1).max(10).optional().describe('Addresses to follow, at most `links.maxLinks` of the configuration.'),
      }),
    result: () =>
      z.strictObject({
        text: z.string().describe('The text as given, followed by the pages.'),
        links: z.array(
          z.strictObject({
            url: z.string(),
            title: z.string(),
            truncated: z.boolean().describe('The page has more than `links.maxCharacters` characters.'),
          }),
        ),
        errors: z.array(z.string()).describe('`<url>: <reason>`.'),
      }),
    examples: [{ params: { text: 'What does it say?' }, result: { text: 'What does it say?', links: [], errors: [] } }],
    since: '0.1.0',
  }),
};
