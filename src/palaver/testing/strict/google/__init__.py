"""Google: generateContent and Interactions of the Gemini API."""
