/** Formats the refused effects of a run for people: "2 effects refused". */
export const refusedEffects = (count: number): string => `${count} ${count === 1 ? 'effect' : 'effects'} refused`;
