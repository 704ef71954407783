import { createContext } from 'react';

/** Opens a code block next to the conversation; absent where it cannot be opened. */
export const ArtifactContext = createContext<((info: string | undefined, text: string) => void) | undefined>(undefined);
