import * as z from 'zod';
import { Secret } from '../config-keys.ts';
import { addressPattern } from './address.ts';

const Host = z.string().min(1).max(255);
const Port = z.int().min(1).max(65_535);
const User = z.string().min(1).max(256);
const Mailbox = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\u0000-\u001f\u007f]+$/, 'expected a name without control characters');

/** Keys of `channels.<name>` that are those of email. */
export const emailKeys = () => ({
  address: z.string().max(254).regex(addressPattern, 'expected one address, such as agent@example.org').describe('Address that mails are sent from.'),
  name: z.string().min(1).max(128).optional().describe('Name next to the address.'),
  imap: z.strictObject({
    host: Host,
    port: Port.default(993),
    tls: z.boolean().default(true).describe('From the first byte; with port 143 after STARTTLS, which is required then.'),
    user: User,
    password: Secret(),
  }),
  smtp: z.strictObject({
    host: Host,
    port: Port.default(465),
    tls: z.boolean().default(true).describe('From the first byte; with port 587 or 25 after STARTTLS, which is required then.'),
    user: User.optional(),
    password: Secret().optional(),
  }),
  tlsCaPath: z
    .string()
    .min(1)
    .optional()
    .describe('File with the certificates that both servers may be signed by, in PEM; those of the system when absent.'),
  mailbox: Mailbox.default('INBOX').describe('Mailbox whose new mails are received.'),
  sentMailbox: Mailbox.optional().describe('Mailbox in which sent mails are stored, when the server has not done so.'),
  markSeen: z.boolean().default(true).describe('Mark mails as read once they are stored.'),
  trustFrom: z
    .boolean()
    .default(false)
    .describe('Believe the From line without a check of the receiving server: anybody can write as anybody. Only for closed systems.'),
  authServId: Host.optional().describe(
    'Name with which the receiving server signs its Authentication-Results; results with another name are ignored. When absent, the topmost are used.',
  ),
});
export type EmailKeys = z.output<z.ZodObject<ReturnType<typeof emailKeys>>>;
