import * as z from 'zod';
import { Secret } from '../config-keys.ts';

/** Text of one word on the wire of IRC. */
const Word = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[^\s:][^\s]*$/, 'expected one word that does not begin with ":"');

/** Keys of `channels.<name>` that are those of IRC. */
export const ircKeys = () => ({
  host: z.string().min(1).max(255),
  port: z.int().min(1).max(65_535).default(6697),
  tls: z.boolean().default(true).describe('Without it everybody on the way reads along.'),
  tlsCaPath: z
    .string()
    .min(1)
    .optional()
    .describe('File with the certificates that the server may be signed by, in PEM; those of the system when absent.'),
  nick: Word,
  username: Word.optional(),
  realName: z.string().min(1).max(128).optional(),
  serverPassword: Secret().optional(),
  sasl: z.strictObject({ user: Word, password: Secret() }).optional().describe('Log in to the services of the network.'),
  channels: z
    .array(Word.regex(/^[#&+!]/, 'expected the name of a channel, such as #gatehouse'))
    .max(64)
    .default([])
    .describe('Channels to join.'),
});
export type IrcKeys = z.output<z.ZodObject<ReturnType<typeof ircKeys>>>;
