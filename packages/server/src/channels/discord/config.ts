import * as z from 'zod';
import { Secret } from '../config-keys.ts';

/** Returns the keys of `channels.<name>` that only Discord has. */
export const discordKeys = () => ({
  token: Secret().describe('Token of the bot, from the page "Bot" of the application.'),
  apiUrl: z
    .url({ protocol: /^https?$/ })
    .refine((url) => /^https?:\/\/[^@?#]*$/.test(url), 'expected an address without a user, query or fragment')
    .default('https://discord.com/api')
    .describe('Base address of the API, for a proxy. The token is sent to it: use plain http only on the same machine or network.'),
});
export type DiscordKeys = z.output<z.ZodObject<ReturnType<typeof discordKeys>>>;
