"""summaries folders"""
