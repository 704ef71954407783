import { SecretName } from '@gatehouse/contract';
import * as z from 'zod';
import { rawDocument } from '../../../kernel/config/references-in.ts';

const Tokens = z.looseObject({ gateway: z.looseObject({ tokens: z.array(z.looseObject({ id: z.string(), secret: z.string() })) }) });

/** Returns the name in `secret: "${NAME}"` of a token of config.yaml; undefined when its secret is another text, or the token is elsewhere. */
export function tokenReference(text: string, tokenId: string): string | undefined {
  const document = Tokens.safeParse(rawDocument(text));
  const secret = document.data?.gateway.tokens.find(({ id }) => id === tokenId)?.secret;
  const name = /^\$\{(\w+)\}$/.exec(secret ?? '')?.[1];
  return SecretName().safeParse(name).data;
}
