import * as z from 'zod';
import { Secret } from '../config-keys.ts';

/** Keys of `channels.<name>` that are those of Slack. */
export const slackKeys = () => ({
  botToken: Secret()
    .regex(/^[\x21-\x7e]+$/, 'expected a token')
    .describe('Bot token of the app, which begins with `xoxb-`.'),
  appToken: Secret()
    .regex(/^[\x21-\x7e]+$/, 'expected a token')
    .describe('App-level token with the scope `connections:write`, which begins with `xapp-`.'),
  apiUrl: z
    .url({ protocol: /^https?$/ })
    .max(512)
    .refine((text) => isPlain(text), 'expected an address without user, query and fragment')
    .default('https://slack.com/api/')
    .describe('Address of the Web API; `https://slack-gov.com/api/` for GovSlack.'),
});
export type SlackKeys = z.output<z.ZodObject<ReturnType<typeof slackKeys>>>;

function isPlain(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
}
