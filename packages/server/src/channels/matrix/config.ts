import * as z from 'zod';
import { isPublicAddress } from '../../kernel/public-address.ts';
import { Secret } from '../config-keys.ts';

/** Without encryption only this machine and its private networks are reached. */
const isPrivateHost = (host: string): boolean =>
  host === 'localhost' || host.endsWith('.localhost') || (/^[\d.]+$|^\[/.test(host) && !isPublicAddress(host.replaceAll(/^\[|\]$/g, '')));

function isHomeserver(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isPrivateHost(url.hostname));
}

/** `*`, `*:server`, or the id of a user. */
const Inviter = z
  .string()
  .max(255)
  .regex(/^(?:\*|\*:[^\s/?#*]+|@[^\s:]*:[^\s/?#]+)$/, 'expected "*", "*:example.org" or the id of a user, such as @ada:example.org');

/** Keys of `channels.<name>` that are those of Matrix. */
export const matrixKeys = () => ({
  homeserver: z
    .string()
    .max(512)
    .refine(isHomeserver, 'expected an https address without a login, or an http address on this machine or a private network')
    .describe('Address of the client-server API, such as https://matrix.example.org.'),
  accessToken: Secret(),
  joinInvitesFrom: z
    .strictObject({
      direct: z.array(Inviter).max(256).default(['*']).describe('Whose invitations to a direct conversation are accepted.'),
      groups: z.array(Inviter).max(256).default([]).describe('Whose invitations to other rooms are accepted.'),
    })
    .prefault({})
    .describe('Entries are ids of users, `*:example.org` for everybody of a server, or `*`.'),
});
export type MatrixKeys = z.output<z.ZodObject<ReturnType<typeof matrixKeys>>>;
