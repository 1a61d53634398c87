"""How long is nobody served when one of two extenders ends, and is every gang whole afterwards?"""
