import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** A password or token: redacted wherever the configuration is shown, and mostly a reference such as `${TELEGRAM_TOKEN}`. */
export const Secret = once(() => z.string().min(1).max(512).meta({ secret: true }));
