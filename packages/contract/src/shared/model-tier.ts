import * as z from 'zod';
import { once } from '../once.ts';

export const modelTiers = ['small', 'mid', 'frontier'] as const;
/** Capability of a model: whether it may be trusted with work that small models do badly. */
export const ModelTier = once(() => z.enum(modelTiers).meta({ id: 'ModelTier' }));
export type ModelTier = (typeof modelTiers)[number];
