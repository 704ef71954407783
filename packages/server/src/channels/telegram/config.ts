import * as z from 'zod';
import { Secret } from '../config-keys.ts';

/** Keys of `channels.<name>` that are those of Telegram. */
export const telegramKeys = () => ({
  token: Secret().describe('Token of the bot, from @BotFather.'),
  apiUrl: z
    .url({ protocol: /^https?$/ })
    .max(512)
    .default('https://api.telegram.org')
    .describe('Address of the Bot API: that of Telegram, or of a Bot API server that you run.'),
});
export type TelegramKeys = z.output<z.ZodObject<ReturnType<typeof telegramKeys>>>;
