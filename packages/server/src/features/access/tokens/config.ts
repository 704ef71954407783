import { OwnerLimits, PersonName } from '@gatehouse/contract';
import * as z from 'zod';

/** Section `persons` of config.yaml. */
export const PersonsConfig = z.record(PersonName(), z.strictObject(OwnerLimits()));
export type PersonsConfig = z.output<typeof PersonsConfig>;
