import { createContext } from 'react';

/** Opens a code block next to the conversation; absent where there is no place for it. */
export const ArtifactContext = createContext<((info: string | undefined, text: string) => void) | undefined>(undefined);
